delete from windlass_receipt where at < :until
