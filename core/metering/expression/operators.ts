/** The operators and functions of an expression (docs/decisions/0004): their effect on exact decimals and their weights. */
import { type Exact, negated } from '../exact.ts';
import * as arithmetic from './arithmetic.ts';
import type { Weighed } from './work.ts';

export type Unary = (value: Exact) => Exact;
type Binary = (a: Exact, b: Exact) => Exact;

export const BINARY = new Map<string, Binary>([
  ['_+_', arithmetic.add],
  ['_-_', arithmetic.subtract],
  ['_*_', arithmetic.multiply],
  ['_/_', arithmetic.divide],
  ['max', arithmetic.greater],
  ['min', arithmetic.lesser],
  ['pow', arithmetic.power],
]);

export const BINARY_WEIGHTS: Readonly<Record<string, Weighed>> = {
  '_+_': 'add',
  '_-_': 'add',
  '_*_': 'multiply',
  '_/_': 'divide',
  max: 'compare',
  min: 'compare',
  pow: 'pow',
};

export const UNARY = new Map<string, Unary>([
  ['-_', negated],
  ['double', (value) => value],
  ['abs', arithmetic.absolute],
  ['floor', (value) => arithmetic.toWhole(value, 'floor')],
  ['ceil', (value) => arithmetic.toWhole(value, 'ceil')],
  ['round', (value) => arithmetic.toWhole(value, 'round')],
  ['sqrt', arithmetic.squareRoot],
  ['log', arithmetic.naturalLogarithm],
]);

export const UNARY_WEIGHTS: Readonly<Record<string, Weighed>> = {
  '-_': 'abs',
  double: 'constant',
  abs: 'abs',
  floor: 'round',
  ceil: 'round',
  round: 'round',
  sqrt: 'sqrt',
  log: 'log',
};

export const ORDERS = new Map<string, (sign: number) => boolean>([
  ['_<_', (sign) => sign < 0],
  ['_<=_', (sign) => sign <= 0],
  ['_>_', (sign) => sign > 0],
  ['_>=_', (sign) => sign >= 0],
]);

export function isRounding(name: string): name is arithmetic.RoundingDirection {
  return name === 'floor' || name === 'ceil' || name === 'round';
}

/** The syntax tree writes operators as "_+_" and functions as "max". */
export function operatorText(name: string): string {
  if (name === '_[_]') return '[ ]';
  return /^[A-Za-z]/.test(name) ? `${name}()` : name.replaceAll('_', '').replace('@', '');
}
