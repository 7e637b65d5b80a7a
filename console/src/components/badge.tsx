/** A short state, such as the result of an entry. Its text says everything; the colour only helps. */
export type Tone = 'neutral' | 'good' | 'warning' | 'danger';

export function Badge({ text, tone = 'neutral' }: { readonly text: string; readonly tone?: Tone }) {
  return <span className={`badge ${tone}`}>{text}</span>;
}
