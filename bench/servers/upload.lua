-- For wrk: a body of 64 KB.
wrk.method = 'POST'
wrk.body = string.rep('x', 64 * 1024)
