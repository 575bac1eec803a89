-- A job is packed for itself, {id, its row}, so that one that cannot be read spoils no other: that one has no row.
local function framed_row(id, row)
    return array(2) .. cmsgpack.pack(id) .. (row and bytes(row) or NIL)
end
