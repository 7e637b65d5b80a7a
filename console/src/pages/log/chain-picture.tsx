/**
 * The log from left to right, to scale: blocks of entries, the tree over them, the signed checkpoint, and the break.
 * The block with the break and its path to the root are marked. What comes after is not proven, because each MAC covers
 * the one before.
 */
import { type Block, drawLog, type LogPicture, positionOf, WIDTH } from './log-picture.ts';

const MARGIN = 14;
const LEVEL_PX = 34;
const BLOCK_PX = 26;
const TOP = 12;
const BELOW_PX = 62;

interface Props {
  /** Entries that the log has, or had. */
  readonly entries: number;
  readonly breakAt: number | null;
  /** Entries that the newest signed checkpoint covers; null if none is known. */
  readonly checkpoint: number | null;
}

const written = (number: number): string => number.toLocaleString('en');

function describe({ entries, breakAt, checkpoint }: Props): string {
  const signed = checkpoint === null ? '' : ` The newest checkpoint covers ${written(checkpoint)} entries.`;
  if (breakAt === null) return `A chain of ${written(entries)} entries without a break, and the tree over it.${signed}`;
  const where = Math.round((Math.max(0, breakAt - 1) / Math.max(1, entries)) * 100);
  return (
    `A chain of ${written(entries)} entries that is intact up to entry ${written(Math.max(0, breakAt - 1))} and broken ` +
    `at entry ${written(breakAt)}, ${where}% along the log.${signed}`
  );
}

const nodeX = (blocks: readonly Block[], level: number, index: number): number => {
  const span = 2 ** level;
  const [first, last] = [blocks[index * span], blocks[(index + 1) * span - 1]];
  return first === undefined || last === undefined ? 0 : (first.x + last.x + last.width) / 2;
};

export function ChainPicture(props: Props) {
  const { entries, breakAt, checkpoint } = props;
  const picture = drawLog(entries, breakAt);
  const base = TOP + picture.levels * LEVEL_PX;
  const height = base + BLOCK_PX + BELOW_PX;
  return (
    <svg
      className="chain"
      viewBox={`${-MARGIN} 0 ${WIDTH + 2 * MARGIN} ${height}`}
      role="img"
      aria-label={describe(props)}
    >
      <Tree picture={picture} base={base} />
      {picture.blocks.map(({ first, last, x, width, state }) => (
        <rect key={first} className={state} x={x + 1} y={base} width={Math.max(1, width - 2)} height={BLOCK_PX} rx={3}>
          <title>{first === last ? `Entry ${written(first)}` : `Entries ${written(first)} to ${written(last)}`}</title>
        </rect>
      ))}
      {checkpoint !== null && checkpoint > 0 && (
        <Pin
          x={(checkpoint / Math.max(1, entries)) * WIDTH}
          from={base}
          to={base + BLOCK_PX + 34}
          text={`checkpoint at ${written(checkpoint)}`}
          className="signed"
        />
      )}
      {breakAt !== null && (
        <Pin
          x={positionOf(Math.max(1, breakAt), entries)}
          from={base - 6}
          to={base + BLOCK_PX + 14}
          text={`break at ${written(breakAt)}`}
          className="broken"
        />
      )}
      <text x={0} y={height - 4}>
        1
      </text>
      <text x={WIDTH} y={height - 4} textAnchor="end">
        {written(entries)}
      </text>
    </svg>
  );
}

function Tree({ picture: { blocks, levels, broken }, base }: { readonly picture: LogPicture; readonly base: number }) {
  const y = (level: number): number => base - level * LEVEL_PX;
  const isOnPath = (level: number, index: number): boolean => broken !== null && broken >> level === index;
  const stateOf = (level: number, index: number): string => {
    if (isOnPath(level, index)) return 'broken';
    return broken !== null && index << level > broken ? 'unproven' : 'intact';
  };
  const nodes = Array.from({ length: levels }, (_, below) => below + 1).flatMap((level) =>
    Array.from({ length: blocks.length / 2 ** level }, (_, index) => ({ level, index })),
  );
  return (
    <>
      {nodes.flatMap(({ level, index }) =>
        [index * 2, index * 2 + 1].map((child) => (
          <line
            key={`${level}-${child}`}
            className={isOnPath(level - 1, child) ? 'broken' : 'intact'}
            x1={nodeX(blocks, level, index)}
            y1={y(level)}
            x2={nodeX(blocks, level - 1, child)}
            y2={y(level - 1)}
          />
        )),
      )}
      {nodes.map(({ level, index }) => (
        <circle
          key={`${level}-${index}`}
          className={stateOf(level, index)}
          cx={nodeX(blocks, level, index)}
          cy={y(level)}
          r={6}
        />
      ))}
    </>
  );
}

interface PinProps {
  readonly x: number;
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly className: string;
}

/** A line down to a text, which stays inside of the picture. */
function Pin({ x, from, to, text, className }: PinProps) {
  const anchor = x < WIDTH * 0.15 ? 'start' : x > WIDTH * 0.85 ? 'end' : 'middle';
  return (
    <g className={`pin ${className}`} data-position={(x / WIDTH).toFixed(3)}>
      <line x1={x} y1={from} x2={x} y2={to - 12} />
      <text x={x} y={to} textAnchor={anchor}>
        {text}
      </text>
    </g>
  );
}
