/** What the server adds to the framework's requests and to the configuration of routes. */
import type { Authentication } from '../core/agent.ts';
import type { EventType } from '../core/audit.ts';
import type { RouteMeasures } from './request-measures.ts';

declare module 'fastify' {
  interface FastifyRequest {
    authentication: Authentication | null;
    token: string;
    /** Whether the token came in the parts of a browser's session. */
    isBrowserSession: boolean;
  }
  interface FastifyContextConfig {
    readonly measures?: RouteMeasures;
    /** Whether the route needs no token. By default it needs one. */
    readonly isPublic?: boolean;
    /** Served while the service starts, stops or is locked. */
    readonly isAlwaysServed?: boolean;
    readonly showsLog?: boolean;
    readonly takesSession?: boolean;
    /** The event of a route that only the administrator may use. */
    readonly adminEvent?: EventType;
  }
}
