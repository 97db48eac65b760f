// Prints how node was started; with `stay` it then waits for a signal.
import { getHeapStatistics } from 'node:v8';

const { heap_size_limit } = getHeapStatistics();
process.send({ pid: process.pid, execArgv: process.execArgv, heap_size_limit });
// Without a listener the channel to the parent does not keep the process alive, and it could end before the signal comes.
if (process.argv.includes('stay')) process.on('disconnect', () => process.exit(1));
else process.disconnect();
