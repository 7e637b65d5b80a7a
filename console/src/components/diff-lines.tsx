/** The difference of two lists of texts: first what is removed, then what there is afterwards. */

interface Props {
  readonly from: readonly string[];
  readonly to: readonly string[];
}

export function DiffLines({ from, to }: Props) {
  const removed = from.filter((text) => !to.includes(text));
  return (
    <>
      {removed.map((text) => (
        <del key={text}>{`− ${text}`}</del>
      ))}
      {to.map((text) => {
        if (!from.includes(text)) return <ins key={text}>{`+ ${text}`}</ins>;
        return <span key={text} className="same">{`  ${text}`}</span>;
      })}
    </>
  );
}
