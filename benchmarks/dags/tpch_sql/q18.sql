-- Customers with very large orders (TPC-H 18)
select c_name, c_custkey, l_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from sales join customers on o_custkey = c_custkey
group by c_name, c_custkey, l_orderkey, o_orderdate, o_totalprice
having sum(l_quantity) > 300
