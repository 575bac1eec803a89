-- a pending job from whose record no claim can be decoded, by its columns alone; set_aside.sql says what is damaged
codec = ''
or created_at < '0001-01-01 00:00:00+00' or created_at > '9999-12-31 23:59:59.999999+00'
or run_at < '0001-01-01 00:00:00+00' or run_at > '9999-12-31 23:59:59.999999+00'
-- more may be too much for a regular expression
or headers is not null and case when octet_length(headers) > 10000000 then true else headers !~ {header_pattern} end
