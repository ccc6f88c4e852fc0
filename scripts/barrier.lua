local barrier = table.remove(KEYS) -- the last key is none of the operation's: nobody ever writes it (P54)
