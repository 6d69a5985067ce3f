import { isIP, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** A host in the one spelling in which it is compared: in lower case, and an IPv6 address without brackets and as short as can be. */
export function normalizeHost(text: string): string {
  const bracketed = /^\[(.*)\]$/.exec(text)?.[1] ?? '';
  const host = (isIPv6(bracketed) ? bracketed : text).toLowerCase();
  return isIPv6(host) && URL.canParse(`http://[${host}]`) ? new URL(`http://[${host}]`).hostname.slice(1, -1) : host;
}

/** Whether a host, as `normalizeHost` returns it, is this machine: `localhost`, 127.0.0.0/8, which may be written as IPv6, or ::1. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback');
}

/** Whether a text in decimal digits is the number of a port that a program can connect to. */
export function isPort(text: string): boolean {
  return /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
