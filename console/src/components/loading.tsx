/** Shown while data is loading. Delayed, so that fast responses do not flicker. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what}…
    </p>
  );
}
