-- Customers who returned most (TPC-H 10)
select c_custkey, c_name, c_acctbal, c_nation, sum(revenue) as revenue
from sales join customers on o_custkey = c_custkey
where l_returnflag = 'R' and o_orderdate >= date'1993-10-01' and o_orderdate < date'1994-01-01'
group by c_custkey, c_name, c_acctbal, c_nation
order by revenue desc, c_custkey
limit 20
