-- Orders delivered late, by priority (TPC-H 4)
select o_orderpriority, count(distinct l_orderkey) as order_count
from sales
where o_orderdate >= date'1993-07-01' and o_orderdate < date'1993-10-01' and l_commitdate < l_receiptdate
group by o_orderpriority
