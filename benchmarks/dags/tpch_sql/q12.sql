-- Late deliveries by way of shipping and urgency (TPC-H 12)
select l_shipmode, count_if(o_orderpriority in ('1-URGENT', '2-HIGH')) as urgent,
  count_if(o_orderpriority not in ('1-URGENT', '2-HIGH')) as others
from sales
where l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
  and l_receiptdate >= date'1994-01-01' and l_receiptdate < date'1995-01-01'
group by l_shipmode
