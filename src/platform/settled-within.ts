/** Resolves when the promise has settled, or after the time. WHY no `unref`: the program must not end before. */
export async function settledWithin(promise: Promise<unknown> | null, milliseconds: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  const settled = Promise.resolve(promise).then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([settled, late]);
  clearTimeout(timer);
}
