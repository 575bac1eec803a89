-- waits for every claim that is under way, each of which holds a lock on this table, and lets new ones wait meanwhile
lock table windlass_gate in share mode
