/** The program with which customers check invoices. It is plain JavaScript and imports nothing from the service. */
import { join } from 'node:path';
import { expect } from 'chai';
import * as program from '../../commands/verify-invoice.mjs';
import type { InvoiceProof } from './answers.ts';
import type { TestApi } from './api.ts';

export type Difference = { line: string; field: string; stated: string; computed: string; digit: string };
export type Verdict = {
  differences: Difference[];
  stated: { line: string; what: string }[];
  /** Paths of fields that the verifier neither computes nor compares; `x.*` covers all fields below x. */
  fields: ReadonlySet<string>;
  isStated(path: string): boolean;
};

type Verifier = {
  verify(proof: unknown, events?: (() => Iterable<string>) | null): Promise<Verdict>;
  verifyEvent(proof: unknown, event: unknown): Promise<Verdict>;
  windowAt(at: number, size: string, grid: { timezone: string; anchor: number }): { start: number; end: number };
  quantity(property: unknown): bigint | undefined;
  compiledExpression(text: string): (properties: ReadonlyMap<string, unknown>) => bigint | undefined;
  canonical(text: string): string;
  instant(text: string): number;
  readJson(text: string): unknown;
  firstDifference(stated: string, computed: string): string;
};

export const VERIFIER = join(import.meta.dirname, '..', '..', 'commands', 'verify-invoice.mjs');
export const verifier = program as unknown as Verifier;

export type Proven = { proof: InvoiceProof; events: string[] };

/** Loads the proof of an invoice and its events through the API. */
export async function provenBy(api: TestApi, invoice_id: string): Promise<Proven> {
  const proof = await api.request('GET', `/invoices/${invoice_id}/proof`);
  expect(proof.status, proof.text).to.equal(200);
  const headers = { 'x-api-key': api.key };
  const events = await fetch(`${api.url}/v1/invoices/${invoice_id}/proof/events`, { headers });
  const text = await events.text();
  expect(events.status, text).to.equal(200);
  return { proof: proof.body, events: text.split('\n').filter((line) => line !== '') };
}

export function check({ proof, events }: Proven): Promise<Verdict> {
  return verifier.verify(proof, () => events);
}
