-- Revenue of suppliers in their own country, Asia (TPC-H 5)
select c_nation as nation, sum(revenue) as revenue
from sales join customers on o_custkey = c_custkey join suppliers on l_suppkey = s_suppkey and c_nation = s_nation
where c_region = 'ASIA' and o_orderdate >= date'1994-01-01' and o_orderdate < date'1995-01-01'
group by c_nation
