-- Trade between France and Germany, by year (TPC-H 7)
select s_nation, c_nation, year(l_shipdate) as year, sum(revenue) as revenue
from sales join customers on o_custkey = c_custkey join suppliers on l_suppkey = s_suppkey
where l_shipdate between date'1995-01-01' and date'1996-12-31'
  and (s_nation, c_nation) in (('FRANCE', 'GERMANY'), ('GERMANY', 'FRANCE'))
group by all
