/**
 * A page of the matrix: a row for each path, a column for each agent, and in each cell a letter for each allowed
 * action. Arrows, Home, End, Page Up and Page Down move. Enter, or the letter of an action, opens the simulator. A
 * cell's reasons are shown while it has the focus or the pointer.
 */
import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from 'react';
import type { Matrix } from '../../../../src/client/types.ts';

interface Opened {
  readonly agent: string;
  readonly path: string;
  readonly action: string;
}

interface Props {
  readonly matrix: Matrix;
  readonly onOpen: (cell: Opened) => void;
}

/** A cell by its indexes, and the position of its reasons. */
interface Shown {
  readonly row: number;
  readonly column: number;
  readonly left: number;
  readonly top: number;
  readonly isAbove: boolean;
}

const REASONS_WIDTH_PX = 400;
const REASONS_HEIGHT_PX = 220;
const PAGE_ROWS = 10;
/** Gives the pointer time to move from the cell to its reasons. */
const HIDE_DELAY_MS = 150;

export function MatrixGrid({ matrix, onOpen }: Props) {
  const { agents, paths, actions } = matrix;
  const [current, setCurrent] = useState({ row: 0, column: 0 });
  const [shown, setShown] = useState<Shown | null>(null);
  const table = useRef<HTMLTableElement>(null);
  const hiding = useRef<ReturnType<typeof setTimeout>>(undefined);
  const reasonsId = useId();
  useEffect(() => () => clearTimeout(hiding.current), []);
  // Another page contains other cells.
  useEffect(() => {
    if (paths.length > 0) setShown(null);
    setCurrent({ row: 0, column: 0 });
  }, [paths]);
  const show = (element: HTMLElement, row: number, column: number): void => {
    clearTimeout(hiding.current);
    const { left, top, bottom } = element.getBoundingClientRect();
    const isAbove = bottom + REASONS_HEIGHT_PX > innerHeight && top > REASONS_HEIGHT_PX;
    const start = Math.max(8, Math.min(left, innerWidth - REASONS_WIDTH_PX - 8));
    setShown({ row, column, left: start, top: isAbove ? innerHeight - top : bottom, isAbove });
  };
  const hide = (): void => {
    clearTimeout(hiding.current);
    hiding.current = setTimeout(() => setShown(null), HIDE_DELAY_MS);
  };
  const open = (row: number, column: number, action: string): void => {
    const [agent, path] = [agents[column]?.name, paths[row]];
    if (agent !== undefined && path !== undefined) onOpen({ agent, path, action });
  };
  const move = (row: number, column: number): void => {
    const next = {
      row: Math.max(0, Math.min(paths.length - 1, row)),
      column: Math.max(0, Math.min(agents.length - 1, column)),
    };
    setCurrent(next);
    const cell = table.current?.querySelector<HTMLElement>(`[data-cell="${next.row}-${next.column}"]`);
    cell?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { row, column } = current;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && shown !== null) {
      setShown(null);
      return;
    }
    const targets: Readonly<Record<string, readonly [number, number]>> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      Home: [row, 0],
      End: [row, agents.length - 1],
      PageDown: [row + PAGE_ROWS, column],
      PageUp: [row - PAGE_ROWS, column],
    };
    const target = targets[event.key];
    const action = actions.find((name) => name[0] === event.key);
    if (target !== undefined) move(...target);
    else if (action !== undefined) open(row, column, action);
    else return;
    event.preventDefault();
  };
  const onClick = (event: MouseEvent, row: number, column: number): void => {
    const letter = event.target instanceof HTMLElement ? event.target.dataset['action'] : undefined;
    open(row, column, letter ?? actions[0] ?? 'retrieve');
  };
  return (
    <>
      <p className="hint">
        {actions.map((action) => (
          <span key={action} className="legend">
            <span className="grant allowed">{letterOf(action)}</span> {action}
          </span>
        ))}
        <span className="legend">
          <span className="grant">·</span> denied
        </span>
      </p>
      <div className="matrix">
        <table ref={table} aria-label="What each agent may do">
          <thead>
            <tr>
              <th scope="col">Path</th>
              {agents.map(({ name }) => (
                <th key={name} scope="col" title={name}>
                  <span className="cut">{name}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {paths.map((path, row) => (
              <tr key={path}>
                <th scope="row" title={path}>
                  <bdi className="cut">{path}</bdi>
                </th>
                {agents.map(({ name }, column) => (
                  <td key={name}>
                    <button
                      type="button"
                      className="cell"
                      data-cell={`${row}-${column}`}
                      tabIndex={current.row === row && current.column === column ? 0 : -1}
                      aria-describedby={shown?.row === row && shown.column === column ? reasonsId : undefined}
                      onClick={(event) => onClick(event, row, column)}
                      onKeyDown={onKeyDown}
                      onFocus={({ currentTarget }) => {
                        setCurrent({ row, column });
                        show(currentTarget, row, column);
                      }}
                      onBlur={hide}
                      onMouseEnter={({ currentTarget }) => show(currentTarget, row, column)}
                      onMouseLeave={hide}
                    >
                      <span className="visually-hidden">{labelOf(matrix, row, column)}</span>
                      {actions.map((action, index) => {
                        const isAllowed = decisionOf(matrix, row, column, index)?.allowed === true;
                        return (
                          <span
                            key={action}
                            data-action={action}
                            aria-hidden
                            className={`grant${isAllowed ? ' allowed' : ''}`}
                          >
                            {isAllowed ? letterOf(action) : '·'}
                          </span>
                        );
                      })}
                    </button>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown !== null && (
        <div
          id={reasonsId}
          role="tooltip"
          className="reasons"
          style={shown.isAbove ? { left: shown.left, bottom: shown.top } : { left: shown.left, top: shown.top }}
          onMouseEnter={() => clearTimeout(hiding.current)}
          onMouseLeave={hide}
        >
          <Reasons matrix={matrix} row={shown.row} column={shown.column} />
        </div>
      )}
    </>
  );
}

const letterOf = (action: string): string => (action[0] ?? '').toUpperCase();

function decisionOf({ cells, decisions }: Matrix, row: number, column: number, action: number) {
  return decisions[cells[column]?.[row]?.[action] ?? -1];
}

/** A label such as `ci on prod/db: retrieve and list are allowed`. */
function labelOf(matrix: Matrix, row: number, column: number): string {
  const allowed = matrix.actions.filter((_, index) => decisionOf(matrix, row, column, index)?.allowed === true);
  const what = allowed.length === 0 ? 'nothing' : allowed.join(', ');
  return `${matrix.agents[column]?.name} on ${matrix.paths[row]}: ${what} allowed`;
}

function Reasons({ matrix, row, column }: { readonly matrix: Matrix; readonly row: number; readonly column: number }) {
  return (
    <dl>
      {matrix.actions.map((action, index) => {
        const decision = decisionOf(matrix, row, column, index);
        return (
          <div key={action}>
            <dt>
              <span className={`grant${decision?.allowed === true ? ' allowed' : ''}`}>{letterOf(action)}</span>{' '}
              {action}
            </dt>
            <dd>{decision?.reason}</dd>
          </div>
        );
      })}
    </dl>
  );
}
