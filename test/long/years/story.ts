/** How a story of a customer is told: who they are, what they use, what they do, and what that comes to. */
import type { World } from '../../support/world.ts';

/** When, in words, and how; the clock stands at that instant. */
export type Deed = readonly [at: string, said: string, done: (world: World) => Promise<unknown>];
/** When, of which meter, how much; and who, where it is not the customer of the story. */
export type Used = readonly [at: string, meter: string, n: number, who?: string];

export type Story = {
  /** The customer, and the name of the file. */
  readonly name: string;
  readonly title: string;
  /** Customers whose subscriptions stand in the account beside that of `name`. */
  readonly others?: readonly string[];
  readonly used: readonly Used[];
  readonly deeds: readonly Deed[];
  /** What is invoiced in all, by the arithmetic beside it. */
  readonly invoiced: string;
  /** What was put into the wallet. */
  readonly credit_adjustments?: string;
};

/** The same every month on that day: `inMonths("10", "calls", { "2028-01": 400 })`. */
export function inMonths(day: string, meter: string, amounts: Readonly<Record<string, number>>): Used[] {
  return Object.entries(amounts).map(([month, n]) => [`${month}-${day}`, meter, n]);
}

export function pathOf<Verb extends string>(world: World, customer: string, verb: Verb) {
  return `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
}
