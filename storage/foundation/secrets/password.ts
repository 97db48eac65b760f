/**
 * Passwords, stored as scrypt hashes: `scrypt$N$r$p$salt$hash`. A hash takes a tenth of a second of one core and 32 MiB on purpose.
 * So one is computed at a time, and a request is rejected if too many wait: guessing at sign-in must not slow down the ingestion of
 * events.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { FarthingError } from '../../../core/foundation/error.ts';

const COST = { N: 32_768, r: 8, p: 3 } as const;
const MEMORY_MAX = 96 * 1024 * 1024;
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const WAITING_MAX = 20;

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await runInOrder(() => derive(password, salt, COST));
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), hash.toString('base64')].join('$');
}

/** Verifies a password. Without a stored hash it takes equally long, so that the time does not reveal which emails exist. */
export async function isPassword(password: string, stored: string | undefined): Promise<boolean> {
  const [, N, r, p, salt = '', hash = ''] = (stored ?? NOBODYS).split('$');
  const expected = Buffer.from(hash, 'base64');
  const given = await runInOrder(() =>
    derive(password, Buffer.from(salt, 'base64'), { N: Number(N), r: Number(r), p: Number(p) }),
  );
  return stored !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
}

const NOBODYS = ['scrypt', COST.N, COST.r, COST.p, 'AAAA', ''].join('$');

/** Generates a password: 128 random bits as text that people can copy. */
export function makePassword(): string {
  return randomBytes(16).toString('base64url');
}

function derive(password: string, salt: Buffer, cost: ScryptOptions): Promise<Buffer> {
  // NFKC: one encoding of each character, independent of the keyboard.
  const text = password.normalize('NFKC');
  return new Promise((resolve, reject) => {
    scrypt(text, salt, HASH_BYTES, { ...cost, maxmem: MEMORY_MAX }, (error, hash) =>
      error ? reject(error) : resolve(hash),
    );
  });
}

let last: Promise<unknown> = Promise.resolve();
let waiting = 0;

async function runInOrder<Result>(work: () => Promise<Result>): Promise<Result> {
  if (waiting >= WAITING_MAX) throw new FarthingError('too_many_requests', 'too many sign in at once, try again');
  waiting++;
  const mine = last.then(work);
  last = mine.catch(() => {});
  try {
    return await mine;
  } finally {
    waiting--;
  }
}
