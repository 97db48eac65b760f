/** Audit of the ledger of credits: lots, wallets and their histories say what was posted (docs/decisions/0014-credit-ledger.md). */
import {
  type CreditFault,
  type CreditSums,
  creditFaults,
  creditSums,
  someWallets,
} from '../../storage/audit/credits.ts';
import type { Stores } from '../../storage/stores.ts';
import type { OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;
const SAMPLE = 100;

export async function auditCredits({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<CreditSums> {
  for (const fault of await creditFaults(postgres, { wallets: null, limit: FAULTS_MAX })) found(toCreditFinding(fault));
  return creditSums(postgres);
}

/** Of some wallets, all the time. */
export async function sampleCredits({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<void> {
  const wallets = await someWallets(postgres, SAMPLE);
  for (const fault of await creditFaults(postgres, { wallets, limit: FAULTS_MAX })) found(toCreditFinding(fault));
}

function toCreditFinding({ kind, id, stated, found }: CreditFault) {
  return { kind, count: 1, what: `${id} says ${stated}, and ${found} was posted` };
}
