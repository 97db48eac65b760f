import { Tooltip } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';
import styles from './button.module.css';

type ButtonProps = Omit<ComponentProps<'button'>, 'disabled'> & {
  /** A page has one primary action, in ink. */
  isPrimary?: boolean;
  isDangerous?: boolean;
  isBusy?: boolean;
  /** Why the action cannot be done now, for example a role that may not do it. The button stays in the order of focus and says it. */
  blocked?: ReactNode;
};

export function Button({
  isPrimary,
  isDangerous,
  isBusy,
  blocked,
  className,
  onClick,
  type = 'button',
  ...rest
}: ButtonProps): ReactNode {
  const tone = isPrimary ? styles.primary : isDangerous ? styles.dangerous : '';
  const isOff = Boolean(blocked) || isBusy === true;
  const button = (
    <button
      {...rest}
      type={isOff ? 'button' : type}
      className={`${styles.button} ${tone} ${className ?? ''}`}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      onClick={isOff ? undefined : onClick}
    />
  );
  return blocked ? <Tooltip label={blocked}>{button}</Tooltip> : button;
}

/** Classes of a link in the form of a button; `children` is the link of the router with this class. */
export const buttonClass: string = styles.button ?? '';
export const primaryButtonClass = `${styles.button} ${styles.primary}`;
