-- Brazil's share of the American market for one type of part (TPC-H 8)
select year(o_orderdate) as year, sum(if(s_nation = 'BRAZIL', revenue, 0)) / sum(revenue) as share
from sales join customers on o_custkey = c_custkey join suppliers on l_suppkey = s_suppkey
  join part on l_partkey = p_partkey
where c_region = 'AMERICA' and p_type = 'ECONOMY ANODIZED STEEL'
  and o_orderdate between date'1995-01-01' and date'1996-12-31'
group by all
