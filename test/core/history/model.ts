/**
 * A second, simple implementation of all rules, with lists and loops. It follows the decisions page and shares no code
 * with `src`.
 */
import { decidePlainly } from '../reference.ts';
import { type Command, OWN } from './commands.ts';
import {
  type Caller,
  type Lease,
  nameOf,
  plainCredential,
  plainLease,
  type Question,
  recorded,
  type Said,
  statusAt,
  unrecorded,
} from './plain.ts';
import { Records } from './records.ts';

type Of<K extends Command['kind']> = Command & { readonly kind: K };

const ADMINISTRATIVE: Partial<Record<Command['kind'], string>> = {
  createPolicy: 'policy.create',
  replacePolicy: 'policy.replace',
  deletePolicy: 'policy.delete',
  readPolicy: 'policy.read',
  register: 'agent.register',
  deregister: 'agent.deregister',
  readAudit: 'audit.list',
};

const sessionReply = (agentName: string, expiresAt: number, now: number) => ({
  agentName,
  expiresAt,
  expiresInSeconds: Math.floor((expiresAt - now) / 1000),
  roles: null,
  endsAt: null,
});

export class Model extends Records {
  answer(question: Question): Said {
    const { command, now, token } = question;
    if (command.kind === 'start') return recorded('service', 'service.start', '*')('OK');
    if (command.kind === 'verify') return this.#verify(command, question);
    const session = this.sessions.find((each) => each.token === token);
    if (token !== 'admin' && session === undefined) return unrecorded('UNAUTHENTICATED');
    if (session !== undefined && now >= session.expiresAt) return unrecorded('SESSION_EXPIRED');
    const caller = session ?? 'admin';
    const event = ADMINISTRATIVE[command.kind];
    return event === undefined
      ? this.#serve(command, caller, question)
      : this.#administer(command, caller, event, question);
  }

  #administer(command: Command, caller: Caller, event: string, { now, fresh }: Question): Said {
    const name = 'policy' in command ? command.policy.name : 'name' in command ? command.name : null;
    const resource = name === null ? '*' : `${event.split('.')[0]}:${name}`;
    const say = recorded(nameOf(caller), event, resource);
    if (caller !== 'admin') return say('ACCESS_DENIED');
    const policy = this.policies.find((each) => each.name === name);
    const agent = this.agents.find((each) => each.name === name);
    switch (command.kind) {
      case 'createPolicy':
      case 'replacePolicy': {
        if (policy !== undefined && command.kind === 'createPolicy') return say('ALREADY_EXISTS');
        const made = { ...command.policy, createdAt: policy?.createdAt ?? now };
        this.policies = [...this.policies.filter((each) => each !== policy), made];
        return say('OK', made);
      }
      case 'deletePolicy':
        this.policies = this.policies.filter((each) => each !== policy);
        return policy === undefined ? say('NOT_FOUND') : say('OK');
      case 'readPolicy':
        return policy === undefined ? unrecorded('NOT_FOUND') : unrecorded('OK', policy);
      case 'register': {
        if (this.agents.some((each) => each.name.toLowerCase() === name?.toLowerCase())) return say('ALREADY_EXISTS');
        const made = {
          id: fresh,
          name: command.name,
          description: command.description,
          registeredAt: now,
          sessionsEndedAt: null,
          formerPublicKey: null,
          formerKeyUntil: null,
          registeredBy: ['admin'] as const,
        };
        this.agents.push(made);
        return say('OK', made);
      }
      case 'deregister':
        if (agent === undefined) return say('NOT_FOUND');
        this.agents = this.agents.filter((each) => each !== agent);
        this.sessions = this.sessions.filter((session) => session.agent !== agent);
        this.revokeAll((lease) => lease.holder === agent, now);
        return say('OK', agent.id);
      default:
        return unrecorded('OK');
    }
  }

  #serve(command: Command, caller: Caller, question: Question): Said {
    switch (command.kind) {
      case 'retrieve':
        return this.#retrieve(command, caller, question);
      case 'store':
        return this.#store(command, caller, question);
      case 'remove':
      case 'look':
        return this.#removeOrLook(command, caller, question.now);
      case 'list': {
        const seen = this.credentials.filter(({ path }) => this.grant(caller, 'list', path) !== null);
        return recorded(nameOf(caller), 'credential.list', '*')('OK', seen.map(({ path }) => path).sort());
      }
      case 'simulate':
        return this.#simulate(command, caller);
      case 'readSession':
        if (caller === 'admin') return unrecorded('NOT_FOUND');
        return unrecorded('OK', sessionReply(nameOf(caller), caller.expiresAt, question.now));
      case 'endSession':
        this.sessions = this.sessions.filter((session) => session !== caller);
        return recorded(
          nameOf(caller),
          'session.end',
          `agent:${nameOf(caller)}`,
        )(caller === 'admin' ? 'NOT_FOUND' : 'OK');
      case 'listLeases': {
        const own = this.leases.filter((lease) => this.isVisible(lease, caller, question.now));
        return unrecorded(
          'OK',
          own.map(({ id }) => id),
        );
      }
      case 'revokeMany':
        return this.#revokeMany(command, caller, question);
      default:
        return this.#touchLease(command.kind, caller, question);
    }
  }

  #verify({ name }: Of<'verify'>, { now, fresh, challenge, provenFor }: Question): Said {
    const agent = this.agents.find((each) => each.name === name);
    const isFresh = now < challenge.expiresAt && !this.spent.includes(challenge.id);
    if (isFresh) this.spent.push(challenge.id);
    if (agent === undefined || !challenge.wasIssuedToAgent) return unrecorded('AUTH_FAILED');
    const say = recorded(name, 'auth.verify', `agent:${name}`);
    if (!isFresh || provenFor !== agent.id) return say('AUTH_FAILED');
    const session = { token: fresh, agent, expiresAt: now + 60 * 60 * 1000 };
    this.sessions.push(session);
    return say('OK', sessionReply(name, session.expiresAt, now));
  }

  #retrieve(command: Of<'retrieve'>, caller: Caller, { now, fresh }: Question): Said {
    const { path, version, ttl } = command;
    const say = recorded(nameOf(caller), 'credential.retrieve', path);
    const grant = this.grant(caller, 'retrieve', path);
    if (grant === null) return say('ACCESS_DENIED');
    const { policy, seconds } = grant;
    const credential = this.credentials.find((each) => each.path === path);
    const wanted = credential?.versions.find((each) => each.version === (version ?? credential.newest));
    if (credential === undefined || wanted === undefined) return say('NOT_FOUND', null, { policy });
    const expiresAt = now + Math.min(seconds, ttl ?? seconds) * 1000;
    const holder = caller === 'admin' ? caller : caller.agent;
    const issued = { id: fresh, holder, credential, version: wanted.version, policyName: policy, issuedAt: now };
    this.leases.push({ ...issued, expiresAt, revokedAt: null });
    credential.accessCount += 1;
    return say('OK', { value: wanted.value, expiresAt }, { policy, lease: fresh });
  }

  #store(command: Of<'store'>, caller: Caller, { now, value }: Question): Said {
    const { path } = command;
    const say = recorded(nameOf(caller), 'credential.store', path);
    const grant = this.grant(caller, 'store', path);
    if (grant === null) return say('ACCESS_DENIED');
    const { policy } = grant;
    let credential = this.credentials.find((each) => each.path === path);
    if (credential !== undefined && command.onlyIfNew) return say('ALREADY_EXISTS', null, { policy });
    if (credential === undefined) {
      const made = {
        path,
        createdAt: now,
        updatedAt: now,
        type: 'generic',
        description: '',
        accessCount: 0,
        newest: 0,
      };
      credential = { ...made, versions: [] };
      this.credentials.push(credential);
    }
    credential.type = command.type ?? credential.type;
    credential.description = command.description ?? credential.description;
    credential.updatedAt = now;
    credential.newest += 1;
    const { type, newest: version } = credential;
    credential.versions = [...credential.versions, { version, type, createdAt: now, value }].slice(
      -this.settings.versionsKept,
    );
    return say('OK', plainCredential(credential), { policy });
  }

  #removeOrLook({ kind, path }: Of<'remove' | 'look'>, caller: Caller, now: number): Said {
    const action = kind === 'remove' ? 'delete' : 'list';
    const say = recorded(nameOf(caller), `credential.${action}`, path);
    const grant = this.grant(caller, action, path);
    if (grant === null) return say('ACCESS_DENIED');
    const { policy } = grant;
    const credential = this.credentials.find((each) => each.path === path);
    if (credential === undefined) return say('NOT_FOUND', null, { policy });
    if (kind === 'look') {
      const versions = credential.versions.map(({ version, createdAt }) => ({ version, createdAt }));
      return say('OK', { ...plainCredential(credential), versions }, { policy });
    }
    this.credentials = this.credentials.filter((each) => each !== credential);
    this.revokeAll((lease) => lease.credential === credential, now);
    return say('OK', null, { policy });
  }

  #simulate({ agent, path, action }: Of<'simulate'>, caller: Caller): Said {
    const say = recorded(nameOf(caller), 'policy.simulate', path);
    if (caller !== 'admin' && nameOf(caller) !== agent) return say('ACCESS_DENIED');
    const policy = decidePlainly(this.policies, agent, action, path);
    const [policyName, leaseTtlSeconds] = [policy?.name ?? null, policy?.maxTtlSeconds ?? null];
    return unrecorded('OK', { allowed: policy !== null, policyName, leaseTtlSeconds });
  }

  #touchLease(kind: Command['kind'], caller: Caller, { now, lease: id }: Question): Said {
    const lease = this.leases.find((each) => each.id === id && this.isVisible(each, caller, now));
    if (kind === 'readLease')
      return lease === undefined ? unrecorded('NOT_FOUND') : unrecorded('OK', plainLease(lease, now));
    const say = recorded(nameOf(caller), `lease.${kind}`, `lease:${id}`);
    if (lease === undefined) return say('NOT_FOUND', null, { lease: id });
    const isActive = statusAt(lease, now) === 'active';
    if (kind === 'revoke') {
      if (isActive) lease.revokedAt = now;
      return say('OK', null, { lease: id });
    }
    if (!isActive) return say('LEASE_ENDED', null, { lease: id });
    const grant = this.grant(lease.holder, 'retrieve', lease.credential.path);
    if (grant === null) return say('ACCESS_DENIED', null, { lease: id });
    lease.expiresAt = now + grant.seconds * 1000;
    lease.policyName = grant.policy;
    return say('OK', plainLease(lease, now), { lease: id, policy: grant.policy });
  }

  #revokeMany({ agent, path }: Of<'revokeMany'>, caller: Caller, { now, ownName }: Question): Said {
    const holder = agent === OWN ? ownName : agent;
    const say = recorded(nameOf(caller), 'lease.revoke', path ?? `agent:${holder}`);
    if (caller !== 'admin' && nameOf(caller) !== holder) return say('ACCESS_DENIED');
    const isMeant = (lease: Lease) =>
      (holder === null || nameOf(lease.holder) === holder) && (path === null || lease.credential.path === path);
    return say('OK', this.revokeAll(isMeant, now));
  }
}
