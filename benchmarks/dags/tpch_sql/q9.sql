-- Profit on green parts by nation and year (TPC-H 9)
select s_nation, year(o_orderdate) as year, sum(revenue - ps_supplycost * l_quantity) as profit
from sales join part on l_partkey = p_partkey join suppliers on l_suppkey = s_suppkey
  join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey
where p_name like '%green%'
group by all
