import { createElement, type ReactElement } from 'react';

/** Text of the API. It is English in every language of the console, and marked as such for screen readers (WCAG 2.2, 3.1.2). */
export function showApiText(text: string): ReactElement;
export function showApiText(text: string | undefined): ReactElement | undefined;
export function showApiText(text: string | undefined): ReactElement | undefined {
  return text === undefined ? undefined : createElement('span', { lang: 'en' }, text);
}
