/** The event of each route that needs a token, as `docs/api.md` states it. */
const EVENTS: Readonly<Record<string, string>> = {
  listCredentials: 'credential.list',
  retrieveCredential: 'credential.retrieve',
  storeCredential: 'credential.store',
  deleteCredential: 'credential.delete',
  putTargets: 'target.put',
  readTargets: 'target.read',
  deleteTargets: 'target.delete',
  useCredential: 'credential.use',
  listPolicies: 'policy.list',
  createPolicy: 'policy.create',
  simulateAccess: 'policy.simulate',
  readPolicy: 'policy.read',
  replacePolicy: 'policy.replace',
  deletePolicy: 'policy.delete',
  listAgents: 'agent.list',
  registerAgent: 'agent.register',
  readAgent: 'agent.read',
  deregisterAgent: 'agent.deregister',
  readSession: 'session.read',
  endSession: 'session.end',
  issueUseLease: 'lease.use',
  listLeases: 'lease.list',
  revokeLeases: 'lease.revoke',
  readLease: 'lease.read',
  renewLease: 'lease.renew',
  revokeLease: 'lease.revoke',
  listExposure: 'exposure.read',
  readExposure: 'exposure.read',
  panic: 'service.panic',
  listAuditEntries: 'audit.list',
  verifyAuditLog: 'audit.verify',
  readVerificationProgress: 'audit.verify',
  exportAuditLog: 'audit.export',
  listServices: 'target.read',
};

export function eventOf({ id }: { readonly id: string }): string {
  const event = EVENTS[id];
  if (event === undefined) throw new Error(`${id} has no event here`);
  return event;
}
