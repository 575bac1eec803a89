-- parts: asked base
-- Where the jobs of this store go, {to, move}, or nil while it takes jobs.
return call('GET', P .. 'moved') or NIL
