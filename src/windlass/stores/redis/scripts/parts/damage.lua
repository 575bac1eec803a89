-- Return what is said of an error that was caught, where a damaged job can be its cause: a key of another type, or bytes
-- that cannot be unpacked. Any other, such as one of rights or of replication, ends the script. Behind pcall errors of the
-- server are text that begins with its code, which is all that tells them from those of Lua.
local function damage(err)
    local said = type(err) == 'table' and err.err or tostring(err)
    if string.find(said, '^%-?%u%u') and not string.find(said, '^%-?WRONGTYPE') then
        -- as a table it keeps its code
        error({err = said})
    end
    return said
end
