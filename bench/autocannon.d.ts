// What the load generator uses of autocannon, which brings no types of its own.

declare module 'autocannon' {
  namespace autocannon {
    interface Request {
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
    }
    interface Client {
      setRequests(requests: readonly Request[]): void;
    }
    interface Options {
      readonly url: string;
      readonly connections: number;
      /** Requests in all; each is sent and its answer awaited. */
      readonly amount: number;
      readonly setupClient: (client: Client) => void;
      readonly sampleInt: number;
    }
    interface Result {
      readonly errors: number;
      readonly statusCodeStats: Readonly<Record<string, { readonly count: number }>>;
    }
    interface Run extends PromiseLike<Result> {
      on(
        event: 'response',
        listener: (client: Client, status: number, bytes: number, milliseconds: number) => void,
      ): unknown;
    }
  }
  function autocannon(options: autocannon.Options): autocannon.Run;
  export = autocannon;
}
