"""The rows of programs about processes, services, users, devices, terminals, and of harmless programs."""

TABLE = r"""
echo, printf, true, false, yes, seq, expr, bc, dc, env, printenv, uname, arch, whoami, id, groups, logname, who, w,
 users, last, lastlog, hostname, nproc, free, uptime, vmstat, iostat, sleep, usleep, cal, tty, stty, tput, clear,
 reset, locale, localectl, getconf, numfmt, factor, getent, ps, pgrep, pidof, pstree, top, htop, btop, lsof, fuser,
 lscpu, lspci, lsusb, lsmod, lsb_release, sw_vers, dmidecode, sensors, getopt, dircolors, cd, pwd, test, export, set,
 unset, source, shift, return, exit, break, continue, local, declare, readonly, typeset, let, shopt, ulimit, umask,
 times, trap, wait, jobs, bg, fg, disown, history, fc, bind, complete, builtin, enable, getopts, alias, unalias,
 pushd, popd, dirs, read, mapfile, caller, logger, journalctl, uuidgen, mcookie, cowsay, figlet, lolcat, neofetch,
 fastfetch, sync, date, gdate, timedatectl, loginctl, ipcs, jot, units, wait-for-it, dockerize, pv, ts, unbuffer,
 chronic, errno, ascii, man, notify-send, say, banner, toilet, fortune, runlevel, pmap, cpupower, numactl, tload, vgs,
 lvs, pvs, smartctl, xdpyinfo, xrandr, fc-list, fc-match, infocmp, toe : -c,-n,-o,-p,-u,-s,-f,-d,-S,-I,-t=_ _*
pv : -L,-s,-N,-i,-B=_ r*
dmesg : -c,-C,--clear,--read-clear:@lose=kernel-messages _*
date, gdate : -d,-r,-I,--date,--reference,--iso-8601=_ -f,--file=q -s,--set=_:@root _*
history : -c:@lose=shell-history -w,-a=_ _*
uptime, which : _*
fuser : -k,--kill:k* -n=_ _*
nice, ionice, chrt, taskset, timeout, gtimeout, time, stdbuf, setsid, setpriv, setarch, eatmydata, fakeroot, unbuffer,
 xvfb-run, dbus-run-session, caffeinate, torsocks, proxychains, proxychains4, rlwrap, command, exec, coproc,
 nocorrect, noglob, dotenv, doppler, firejail, bwrap, proot, busybox, toybox, gosu, su-exec, chpst, env, systemd-run,
 strace, ltrace, valgrind, direnv, aws-vault, watch, hyperfine, entr, script, retry, chronic, ifne, parallel-ssh,
 run-one, cronic, envdir, with-contenv, tini, dumb-init, s6-setuidgid, setuidgid : @early s*
nohup : @do=nohup
time : -f,--format=_ -o,--output=w @early s*
strace, ltrace : -e,-p,-s,-u,-E,-a,-I,-S,-P,-X,-b,-O=_ -o=w @early s*
script : -a,-q,-f,-e -c,-t,-E,-I,-O,-B,-T,-m,-o,--command=_ w?=typescript _*
flock : -w,-E,-c,--timeout,--wait=_ @early w s*
sudo, doas, run0, pkexec, su, runuser, sg, newgrp, gsudo :
 -u,-g,-p,-C,-c,-D,-h,-R,-r,-T,-t,-U,--user,--group,--prompt,--chdir,--host,--command,--login=_
 -l,-v,-k,-K,--list,--validate:^ @root @early s*
chroot, unshare, nsenter : -r,-R,-S,-G,-w,-t,--userspec,--groups,--target=_ @root @early s*
kill, gkill : -n,-s=_ -l,-L,--list:_* @do=kill
pkill, killall, skill, xkill : -s,-u,-g,-G,-P,-t,-U,-F,--signal,--user=_ -l:_* @do=kill
systemctl, service, launchctl, rc-service, sv, supervisorctl, pm2, brew-services, initctl, chkconfig, update-rc.d, sc
 : -t,-p,-n,-o,-H,-M,--type,--state,--property=_ @verbs @opaque
systemctl status, systemctl show, systemctl cat, systemctl list-units, systemctl list-unit-files, systemctl is-active,
 systemctl is-enabled, systemctl is-failed, systemctl list-timers, systemctl list-dependencies, systemctl
 list-sockets, systemctl get-default, systemctl --version, launchctl list, launchctl print, supervisorctl status, pm2
 list, pm2 ls, pm2 status, pm2 logs, pm2 show, sv status : _*
systemctl stop, systemctl kill, systemctl restart, systemctl disable, systemctl mask, launchctl stop, launchctl kill,
 launchctl bootout, launchctl unload, launchctl remove, supervisorctl stop, supervisorctl restart, pm2 stop, pm2 kill,
 pm2 delete, pm2 restart, sv stop, sv down : k*
systemctl poweroff, systemctl reboot, systemctl halt, systemctl isolate, systemctl emergency, systemctl rescue : @kill
 @root
shutdown, reboot, halt, poweroff, init, telinit : @kill @root _*
useradd, usermod, userdel, adduser, deluser, groupadd, groupdel, groupmod, passwd, chpasswd, chsh, visudo, vipw,
 gpasswd, chage, dscl, newusers : @root @e=/etc/passwd @e=/etc/shadow @e=/etc/group _*
mount, umount, swapon, swapoff, losetup, modprobe, rmmod, insmod, sysctl, depmod, kexec, setenforce, iptables,
 ip6tables, nft, ufw, firewall-cmd, pfctl, tc, apparmor_parser, setcap, capsh, hdparm, nvme, cryptsetup, mdadm, zfs,
 zpool, btrfs, lvremove, vgremove, pvremove, lvcreate, vgcreate, pvcreate, lvextend, resize2fs, tune2fs, e2fsck, fsck,
 fstrim, quotacheck, fusermount, bindfs, mergerfs, diskutil, hdiutil, asr, bless, nvram, csrutil, spctl : @root
 @opaque
mount : -t,-o,-L,-U,-O,--types,--options=_ -l,-V:_* -a:@root&@opaque @do=mount
sysctl : -w,-p:@root&@opaque -a,-n,-e _*
setcap : @root _ w*
mkfs, mke2fs, mkfs.ext2, mkfs.ext3, mkfs.ext4, mkfs.xfs, mkfs.btrfs, mkfs.vfat, mkfs.fat, mkfs.f2fs, mkfs.ntfs,
 mkfs.exfat, mkfs.minix, mkfs.bfs, mkswap, newfs, wipefs, blkdiscard, badblocks :
 -t,-L,-b,-n,-N,-m,-U,-F,-O,-I,-E,-i,-T,-o,-s,-c,--types,--offset,--label=_ @root b _*
fdisk, sfdisk, cfdisk, parted, gdisk, sgdisk : -l,--list,--print:_* -n,-t,-d,-c,-o,-T=_ @root b _*
eject : _*
crontab : -u=_ -l:_* -r:@lose=scheduled-jobs&_* -e:@opaque @e=/var/spool/cron/ r?
at, batch, anacron : -q,-t=_ -f=r -l,-d,-r:_* @opaque _*
tmux, screen, zellij, byobu, dtach, abduco, wezterm, kitty, expect, autoexpect : @verbs @opaque
tmux ls, tmux list-sessions, tmux list-windows, tmux list-panes, tmux display-message, tmux show-options, tmux
 capture-pane, tmux has-session, tmux info, tmux list-keys, tmux list-clients, screen -ls, screen -list, tmux -V :
 -t,-F,-S,-E,-p,-L=_ _*
tmux save-buffer : -b=_ w
tmux load-buffer : -b=_ r
tmux source-file, tmux source : x*
tmux kill-session, tmux kill-window, tmux kill-pane, tmux kill-server : -t=k @kill
logrotate, update-alternatives, ldconfig, localedef, locale-gen, dpkg-reconfigure, hwclock, ntpd, chronyc, adb,
 fastboot, xcrun, xcode-select, defaults, softwareupdate, systemsetup, pmset, xdotool, wmctrl, import, scrot,
 screencapture, xwd, arecord, espeak, tesseract, gs, qpdf, pdftk, pdftotext, wkhtmltopdf, chromium, google-chrome,
 firefox, puppeteer, chromedriver, geckodriver, code-server, ollama, llama-cli, huggingface-cli, hf, claude,
 claude-code, codex, gemini, gemini-cli, qwen, qwen-code, opencode, copilot, cursor-agent, aider, pi, crush, droid,
 amp, openclaw : @opaque
agent-hooks : @opaque
remove-item, ri : @opaque D*
get-childitem, get-content, get-item, test-path, write-host, write-output, get-location, select-string, get-process,
 get-command, measure-object : l*
set-content, add-content, out-file, new-item : w _*
copy-item : r t
move-item : m t
"""
