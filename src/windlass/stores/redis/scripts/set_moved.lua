-- parts: asked base lines news
-- Let this store take nothing new, since its jobs go to ask.moved, which is kept as it comes; without one let it take
-- jobs again.
if ask.moved then
    call('SET', P .. 'moved', ask.moved)
else
    call('DEL', P .. 'moved')
end
tell('pauses')
finish()
return cmsgpack.pack(true)
