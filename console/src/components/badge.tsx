/** A short state, such as the result of an entry. The text is complete without the colour. */
export type Tone = 'neutral' | 'good' | 'warning' | 'danger';

export function Badge({ text, tone = 'neutral' }: { readonly text: string; readonly tone?: Tone }) {
  return <span className={`badge ${tone}`}>{text}</span>;
}
