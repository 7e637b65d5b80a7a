/** Who holds what now, as a table: the view of the page Agents that *Now* leads to. */
export const ACTIVE_LEASES_ADDRESS = '/agents?view=leases&status=active';
