/**
 * What this process asks of a database that nobody else writes to: how many statements that can change something are out, and how many
 * have been answered. While none is out and none has been answered, nothing has changed (docs/decisions/0055-nothing-was-asked.md).
 */
import type { Knex } from 'knex';
import type pg from 'pg';
import { effectOf } from './effect.ts';
import { textOf, whenAnswered } from './when-answered.ts';

export type OwnStatements = { out: number; answered: number };

/** By the address of the database, for all pools that this process has for it. */
const counts = new Map<string, OwnStatements>();
const alone = new WeakMap<Knex, OwnStatements>();

/** To be said before the database is asked for anything: nobody but this process writes to it. */
export function aloneWith(postgres: Knex, url: string): void {
  const count = { out: 0, answered: 0 };
  counts.set(url, count);
  alone.set(postgres, count);
}

/** Undefined where others may write, too. */
export function ownStatementsOf(postgres: Knex): OwnStatements | undefined {
  return alone.get(postgres);
}

/** The statements of one connection, when the parser is there. */
export function countStatements(connection: pg.Client, url: string): void {
  const count = counts.get(url);
  if (count === undefined) return;
  const isEffective = effects();
  whenAnswered(connection, (statement) => {
    if (!isEffective(textOf(statement))) return undefined;
    count.out++;
    return () => {
      count.out--;
      count.answered++;
    };
  });
}

/** What ends a transaction has the effects of what was in it. */
function effects(): (text: string) => boolean {
  let isOwed = false;
  return (text) => {
    const effect = effectOf(text);
    if (effect === 'begins') isOwed = false;
    if (effect === 'some') isOwed = true;
    return effect === 'some' || (effect === 'ends' && isOwed);
  };
}
