import type { ButtonHTMLAttributes, ReactNode } from 'react';
import styles from './text-button.module.css';

/** A button inside a text, underlined like a link. */
export function TextButton({ className = '', ...rest }: ButtonHTMLAttributes<HTMLButtonElement>): ReactNode {
  return <button type="button" className={`${styles.text} ${className}`} {...rest} />;
}
