/** A nominal type: `Brand<string, 'AgentName'>` is a string that the parser of agent names has checked. */
declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
