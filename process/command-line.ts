/** Arguments of a command. A wrong argument prints one line and exits with code 2, before anything is opened. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

type CommandOptions = NonNullable<ParseArgsConfig['options']>;

export function parseArguments<Known extends CommandOptions>(command: string, options: Known) {
  try {
    return parseArgs({ args: process.argv.slice(2), options }).values;
  } catch (error) {
    return exitWithUsage(command, (error as Error).message);
  }
}

export function exitWithUsage(command: string, why: string): never {
  process.stderr.write(`${command}: ${why}\n`);
  process.exit(2);
}
