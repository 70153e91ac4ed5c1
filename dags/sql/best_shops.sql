select shop, total, rank() over (order by total desc) as place
from shops
where total >= {{ params.least }}
