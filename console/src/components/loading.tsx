/** Shown while something is read. It appears after a moment, so that quick answers do not flicker. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what} …
    </p>
  );
}
