update windlass_delivery set retried_at = :now where seq = :seq and delivery = :delivery
