/** CPU time and memory that processes and their descendants have used, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
const NS_PER_SECOND = 1e9;

/** CPU seconds of these processes and all their descendants so far, user and system, including descendants that have ended. */
export function cpuOfTree(pids: readonly number[]): number {
  return sumOfTree(pids, (pid) => {
    const fields = statOf(pid);
    return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS_PER_SECOND;
  });
}

/** CPU seconds of one thread of a process so far; the main thread has the id of the process. */
export function cpuOfThread(pid: number, thread: number): number {
  const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Seconds so far in which the thread was runnable and waited for a core. */
export function lineOfThread(pid: number, thread: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[1]) / NS_PER_SECOND;
}

/** Memory in bytes of these processes and all their descendants, without shared memory segments. */
export function memoryOfTree(pids: readonly number[]): number {
  return sumOfTree(pids, (pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    return (kilobytes('RssAnon') + kilobytes('RssFile')) * 1024;
  });
}

function sumOfTree(pids: readonly number[], amountOf: (pid: number) => number): number {
  return treeOf(pids).reduce((sum, pid) => sum + (unlessEnded(() => amountOf(pid)) ?? 0), 0);
}

function treeOf(roots: readonly number[]): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? unlessEnded(() => Number(statOf(pid)[1])) : undefined;
    if (parent !== undefined) parents.set(pid, parent);
  }
  const wanted = new Set(roots);
  for (let size = 0; size !== wanted.size; ) {
    size = wanted.size;
    for (const [pid, parent] of parents) if (wanted.has(parent)) wanted.add(pid);
  }
  return [...wanted];
}

/** Fields of /proc/PID/stat after the name of the program, which is in parentheses and may contain any character. */
function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Undefined if the process ends during the read. */
function unlessEnded<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
