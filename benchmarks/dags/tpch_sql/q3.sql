-- Unshipped orders of the highest value (TPC-H 3)
select l_orderkey, sum(revenue) as revenue, o_orderdate, o_shippriority
from sales join customers on o_custkey = c_custkey
where c_mktsegment = 'BUILDING' and o_orderdate < date'1995-03-15' and l_shipdate > date'1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate, l_orderkey
limit 10
