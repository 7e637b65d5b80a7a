/** A type that only its own parser can make: `Brand<string, 'AgentName'>` is a string that was checked. */
declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
