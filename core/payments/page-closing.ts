/** Closing of a void payment page at its provider (docs/rules/checkout.md, "Pages that stay open"). */
import { computePageClosingAt } from './schedule.ts';

/** `unopened`: the provider has no page yet, but a process may be about to open it, so closing is tried again. */
export type ClosingResult =
  | { readonly result: 'closed' | 'unopened' }
  | { readonly result: 'open'; readonly error_message: string };

type ClosingFields = {
  readonly next_attempt_at: string | null;
  readonly close_failures: number;
  readonly error_message: string | null;
};

/** Plans what follows an attempt to close the page. While the page stays open, `error_message` shows it to people. */
export function planPageClosing(
  { close_failures, error_message }: { close_failures: number; error_message?: string | null | undefined },
  closing: ClosingResult,
  now: Date,
): ClosingFields {
  const next_attempt_at = computePageClosingAt(close_failures, now).toISOString();
  if (closing.result === 'open')
    return { next_attempt_at, close_failures: close_failures + 1, error_message: closing.error_message };
  const cleared = { close_failures: 0, error_message: close_failures > 0 ? null : (error_message ?? null) };
  return { ...cleared, next_attempt_at: closing.result === 'closed' ? null : next_attempt_at };
}

type UnclosedPage = { readonly id: string; readonly gateway_payment_id?: string | null | undefined };

/** Describes a page that could not be closed and will be tried again; `why` names the obstacle. */
export function describeUnclosedPage(
  { id, gateway_payment_id }: UnclosedPage,
  { gateway, connection_id, why }: { gateway: string; connection_id: string | null; why: string },
): string {
  const through = connection_id === null ? '' : ` (connection ${connection_id})`;
  return `${namePage(gateway_payment_id)} may still be open at ${gateway}${through}: ${why}; closing is tried again, at once by POST /payments/${id}/process or after it is closed there, and a payment on it is refunded`;
}

/** Describes a page that is no longer closed by the service, because the connection was archived. */
export function describeAbandonedPage(
  { gateway_payment_id }: Pick<UnclosedPage, 'gateway_payment_id'>,
  gateway: string,
): string {
  return `${namePage(gateway_payment_id)} may still be open at ${gateway}, whose connection was archived: close it there, and refund there if it is paid`;
}

/** Describes the page of a payment that a person has set to FAILED, because its provider could not be called. */
export function describeDecidedPage(
  { gateway_payment_id }: Pick<UnclosedPage, 'gateway_payment_id'>,
  { gateway, reason }: { gateway: string; reason: string },
): string {
  return `${reason}; ${namePage(gateway_payment_id)} may still be open at ${gateway}: close it there`;
}

function namePage(gateway_payment_id: string | null | undefined): string {
  return gateway_payment_id ? `the page ${gateway_payment_id}` : 'a page of this payment';
}
