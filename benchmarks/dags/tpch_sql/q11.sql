-- The most valuable stock in Germany (TPC-H 11)
with stock as (
  select ps_partkey, sum(ps_supplycost * ps_availqty) as value
  from partsupp join suppliers on ps_suppkey = s_suppkey
  where s_nation = 'GERMANY'
  group by ps_partkey)
select ps_partkey, value from stock where value > (select sum(value) * 0.001 from stock)
