/** Processor time of this process and of those of its child processes that have ended. */
import { existsSync, readFileSync } from 'node:fs';

const STAT = '/proc/self/stat';
/** Linux reports these times in hundredths of a second on every kernel. */
const TICKS_A_SECOND = 100;
/** The indexes of cutime and cstime among the fields after the command's name. SOURCE: proc_pid_stat(5) */
const CHILDREN_FIELDS = [13, 14];

/** Processor seconds. Excludes child processes if the system does not report them. */
export function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childrenSeconds();
}

function childrenSeconds(): number {
  if (!existsSync(STAT)) return 0;
  const text = readFileSync(STAT, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return CHILDREN_FIELDS.reduce((sum, index) => sum + Number(fields[index]), 0) / TICKS_A_SECOND;
}
