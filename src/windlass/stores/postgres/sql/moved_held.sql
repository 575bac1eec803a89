-- for share: nobody lets the store take jobs again before what is over there is gone
select value from windlass_meta where name = 'moved' and value <> '' for share
