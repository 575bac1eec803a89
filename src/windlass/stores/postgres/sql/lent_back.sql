-- what the user of a lent connection may have left behind
reset all;
close all;
unlisten *;
select pg_advisory_unlock_all();
discard temp;
