-- whether a queue is paused, by its settings; a value that is damaged counts as not set
override @> '{"paused": true}' or declared @> '{"paused": true}' and not override @> '{"paused": false}'
